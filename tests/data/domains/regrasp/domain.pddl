; An item is taken from above, and taken again by its other two sides.
(define (domain regrasp)
  (:requirements :typing :negative-preconditions)
  (:types item - object)
  (:predicates (held ?i - item) (across ?i - item))

  (:action take
    :parameters (?i - item)
    :precondition (not (held ?i))
    :effect (held ?i))

  (:action regrasp
    :parameters (?i - item)
    :precondition (and (held ?i) (not (across ?i)))
    :effect (across ?i)))
