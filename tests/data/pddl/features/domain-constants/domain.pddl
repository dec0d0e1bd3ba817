; Actions and conditions name constants of the domain.
(define (domain domain-constants)
  (:requirements :strips :typing)
  (:types dish place)
  (:constants sink shelf - place)
  (:predicates (at ?d - dish ?p - place) (clean ?d - dish))
  (:action wash
    :parameters (?d - dish)
    :precondition (at ?d sink)
    :effect (clean ?d))
  (:action carry
    :parameters (?d - dish ?from ?to - place)
    :precondition (at ?d ?from)
    :effect (and (at ?d ?to) (not (at ?d ?from))))
  (:action store
    :parameters (?d - dish)
    :precondition (and (at ?d sink) (clean ?d))
    :effect (and (at ?d shelf) (not (at ?d sink)))))
