; Negative preconditions, also of several literals, without any requirement.
(define (domain negative-conditions)
  (:predicates (wet ?p) (painted ?p) (sanded ?p))
  (:action sand
    :parameters (?p)
    :precondition (and (not (wet ?p)) (not (painted ?p)))
    :effect (sanded ?p))
  (:action paint
    :parameters (?p)
    :precondition (and (sanded ?p) (not (painted ?p)))
    :effect (and (painted ?p) (wet ?p)))
  (:action dry
    :parameters (?p)
    :precondition (not (not (wet ?p)))
    :effect (not (wet ?p))))
