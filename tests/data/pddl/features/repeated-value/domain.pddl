; The problem gives one value twice.
(define (domain repeated-value)
  (:requirements :typing :action-costs)
  (:types place)
  (:predicates (at ?p - place))
  (:functions (total-cost) - number (toll ?p - place) - number)
  (:action go
    :parameters (?from ?to - place)
    :precondition (at ?from)
    :effect (and (at ?to) (not (at ?from)) (increase (total-cost) (toll ?to)))))
