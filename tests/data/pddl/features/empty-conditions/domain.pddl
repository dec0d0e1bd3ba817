; Preconditions that are empty in three ways, and empty parameters.
(define (domain empty-conditions)
  (:predicates (first) (second) (third) (fourth ?x))
  (:action one
    :parameters ()
    :precondition ()
    :effect (first))
  (:action two
    :parameters ()
    :precondition (and)
    :effect (and (second)))
  (:action three
    :effect (and (third) (not (first))))
  (:action four
    :parameters (?x)
    :precondition (and (and) (first))
    :effect (fourth ?x))
  (:action nothing
    :parameters (?x)
    :effect (and)))
