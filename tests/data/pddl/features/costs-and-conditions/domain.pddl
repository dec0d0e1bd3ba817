; Actions with costs, one from a function, and with conditional effects beside them.
(define (domain costs-and-conditions)
  (:requirements :adl :action-costs)
  (:types crate)
  (:predicates (at-quay ?c - crate) (aboard ?c - crate) (wet ?c - crate) (storm))
  (:functions (total-cost) - number (weight ?c - crate) - number (fee) - number)
  (:action load
    :parameters (?c - crate)
    :precondition (at-quay ?c)
    :effect (and (aboard ?c) (not (at-quay ?c)) (when (storm) (wet ?c)) (increase (total-cost) (weight ?c))))
  (:action wait
    :effect (and (when (storm) (not (storm))) (increase (total-cost) 10)))
  (:action pump
    :parameters (?c - crate)
    :precondition (wet ?c)
    :effect (and (increase (total-cost) (fee)) (not (wet ?c)))))
