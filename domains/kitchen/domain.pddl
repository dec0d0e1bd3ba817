; A kitchen: things are carried from region to region, washed where there is water and cooked where there is heat.
(define (domain kitchen)
  (:requirements :typing)
  (:types item region - object)
  (:predicates
    (on ?x - item ?r - region)             ; ?x stands on ?r, all of its footprint
    (holding ?x - item)
    (handempty)
    (athome)                               ; the arm is at its ready configuration
    (washes ?r - region)                   ; what stands on ?r can be cleaned
    (heats ?r - region)                    ; what stands on ?r can be cooked
    (clean ?x - item)
    (cooked ?x - item))

  (:action pick
    :parameters (?x - item ?r - region)
    :precondition (and (on ?x ?r) (handempty))
    :effect (and (holding ?x) (not (on ?x ?r)) (not (handempty)) (not (athome))))

  (:action place
    :parameters (?x - item ?r - region)
    :precondition (holding ?x)
    :effect (and (on ?x ?r) (handempty) (not (holding ?x)) (not (athome))))

  (:action move-home
    :parameters ()
    :precondition (and)
    :effect (athome))

  (:action clean
    :parameters (?x - item ?r - region)
    :precondition (and (on ?x ?r) (washes ?r))
    :effect (clean ?x))

  (:action cook
    :parameters (?x - item ?r - region)
    :precondition (and (on ?x ?r) (heats ?r) (clean ?x))
    :effect (and (cooked ?x) (not (clean ?x)))))
