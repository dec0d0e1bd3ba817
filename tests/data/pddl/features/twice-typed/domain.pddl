; A type declared twice: a crane lifts like a tool and drives like a vehicle.
(define (domain twice-typed)
  (:requirements :strips :typing)
  (:types tool vehicle place - object
          crane - tool crane - vehicle
          hammer - tool)
  (:predicates (ready ?t - tool) (at ?v - vehicle ?p - place))
  (:action prepare
    :parameters (?t - tool)
    :effect (ready ?t))
  (:action drive
    :parameters (?v - vehicle ?from ?to - place)
    :precondition (at ?v ?from)
    :effect (and (at ?v ?to) (not (at ?v ?from)))))
