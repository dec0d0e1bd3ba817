; The goal quantifies over all objects and some.
(define (domain quantified-goal)
  (:requirements :adl)
  (:types guest chair)
  (:predicates (sits ?g - guest ?c - chair) (taken ?c - chair) (asked ?g - guest))
  (:action ask
    :parameters (?g - guest)
    :precondition (not (exists (?c - chair) (sits ?g ?c)))
    :effect (asked ?g))
  (:action sit
    :parameters (?g - guest ?c - chair)
    :precondition (and (asked ?g) (forall (?o - guest) (not (sits ?o ?c))))
    :effect (and (sits ?g ?c) (taken ?c))))
