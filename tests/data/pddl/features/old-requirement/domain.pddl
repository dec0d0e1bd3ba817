; The requirement :negation, an old name of :negative-preconditions.
(define (domain old-requirement)
  (:requirements :strips :negation)
  (:predicates (asleep ?c) (fed ?c))
  (:action feed
    :parameters (?c)
    :precondition (not (asleep ?c))
    :effect (fed ?c))
  (:action wake
    :parameters (?c)
    :precondition (asleep ?c)
    :effect (not (asleep ?c))))
