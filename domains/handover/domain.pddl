; Several arms and places: an item that no arm can carry all the way changes hands.
(define (domain handover)
  (:requirements :typing :equality :negative-preconditions)
  (:types arm item place - object)
  (:predicates
    (at ?i - item ?p - place)
    (holding ?a - arm ?i - item)
    (empty ?a - arm))

  (:action pick
    :parameters (?a - arm ?i - item ?p - place)
    :precondition (and (at ?i ?p) (empty ?a))
    :effect (and (holding ?a ?i) (not (at ?i ?p)) (not (empty ?a))))

  (:action place
    :parameters (?a - arm ?i - item ?p - place)
    :precondition (holding ?a ?i)
    :effect (and (at ?i ?p) (empty ?a) (not (holding ?a ?i))))

  (:action hand-over
    :parameters (?giver - arm ?taker - arm ?i - item)
    :precondition (and (holding ?giver ?i) (empty ?taker) (not (= ?giver ?taker)))
    :effect (and (holding ?taker ?i) (empty ?giver) (not (holding ?giver ?i)) (not (empty ?taker)))))
