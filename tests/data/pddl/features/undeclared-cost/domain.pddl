; The function total-cost is used, but not declared.
(define (domain undeclared-cost)
  (:requirements :strips :action-costs)
  (:predicates (open ?g) (shut ?g))
  (:action unlock
    :parameters (?g)
    :precondition (shut ?g)
    :effect (and (open ?g) (not (shut ?g)) (increase (total-cost) 2)))
  (:action break
    :parameters (?g)
    :precondition (shut ?g)
    :effect (and (open ?g) (not (shut ?g)) (increase (total-cost) 7))))
