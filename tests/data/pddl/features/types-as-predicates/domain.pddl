; Predicates have the names of types.
(define (domain types-as-predicates)
  (:requirements :typing)
  (:types ship port - object)
  (:predicates (ship ?s - ship) (port ?s - ship ?p - port) (at ?s - ship ?p - port))
  (:action name
    :parameters (?ship - ship)
    :effect (ship ?ship))
  (:action sail
    :parameters (?s - ship ?from ?to - port)
    :precondition (and (ship ?s) (at ?s ?from) (port ?s ?to))
    :effect (and (at ?s ?to) (not (at ?s ?from)))))
