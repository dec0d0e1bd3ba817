; Equality of parameters, of a parameter and a constant, and in quantified conditions.
(define (domain equality)
  (:requirements :adl :equality)
  (:constants joker)
  (:predicates (in-hand ?c) (laid ?c) (pair ?a ?b))
  (:action lay-pair
    :parameters (?a ?b)
    :precondition (and (in-hand ?a) (in-hand ?b) (not (= ?a ?b)) (not (= ?a joker)))
    :effect (and (pair ?a ?b) (laid ?a) (laid ?b) (not (in-hand ?a)) (not (in-hand ?b))))
  (:action lay-last
    :parameters (?a)
    :precondition (and (in-hand ?a) (forall (?o) (imply (in-hand ?o) (= ?o ?a))))
    :effect (forall (?c) (when (or (= ?c ?a) (= ?c joker)) (and (laid ?c) (not (in-hand ?c)))))))
