; Pushing: items that the hand cannot grasp where they lie are pushed from region to region.
(define (domain push)
  (:requirements :typing)
  (:types item region - object)
  (:predicates
    (on ?i - item ?r - region)             ; ?i stands on ?r, all of its footprint
    (connected ?r - region ?s - region)    ; they lie on one support: a push leads from one to the other
    (holding ?i - item)
    (handempty))

  (:action push
    :parameters (?i - item ?from - region ?to - region)
    :precondition (and (on ?i ?from) (connected ?from ?to) (handempty))
    :effect (and (on ?i ?to) (not (on ?i ?from))))

  (:action pick
    :parameters (?i - item ?r - region)
    :precondition (and (on ?i ?r) (handempty))
    :effect (and (holding ?i) (not (on ?i ?r)) (not (handempty))))

  (:action place
    :parameters (?i - item ?r - region)
    :precondition (holding ?i)
    :effect (and (on ?i ?r) (handempty) (not (holding ?i)))))
