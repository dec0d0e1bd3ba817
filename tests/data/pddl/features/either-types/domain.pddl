; A parameter of a predicate may be of either of two types.
(define (domain either-types)
  (:requirements :strips :typing)
  (:types rover lander base)
  (:predicates (parked ?v - (either rover lander) ?b - base) (charged ?r - rover) (fuelled ?l - lander))
  (:action charge
    :parameters (?r - rover ?b - base)
    :precondition (parked ?r ?b)
    :effect (charged ?r))
  (:action fuel
    :parameters (?l - lander ?b - base)
    :precondition (parked ?l ?b)
    :effect (and (fuelled ?l) (not (parked ?l ?b)))))
