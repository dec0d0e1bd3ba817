; Mobile manipulation: an arm on a mobile base drives between locations, and picks and places where it stands.
(define (domain mobile_manipulation)
  (:requirements :typing :action-costs)
  (:types item location - object surface - location)
  (:predicates
    (at ?l - location)                     ; the base is at ?l
    (on ?i - item ?s - surface)
    (holding ?i - item)
    (handempty))

  (:functions (total-cost) - number)       ; drives alone cost: plans make no detours

  (:action drive
    :parameters (?from - location ?to - location)
    :precondition (at ?from)
    :effect (and (at ?to) (not (at ?from)) (increase (total-cost) 1)))

  (:action pick
    :parameters (?i - item ?s - surface)
    :precondition (and (on ?i ?s) (at ?s) (handempty))
    :effect (and (holding ?i) (not (on ?i ?s)) (not (handempty))))

  (:action place
    :parameters (?i - item ?s - surface)
    :precondition (and (holding ?i) (at ?s))
    :effect (and (on ?i ?s) (handempty) (not (holding ?i)))))
