; The blocks domain with facts that no geometry shows: dishes are dirty, and a lamp has to be lit to wash them.
(define (domain dishes)
  (:requirements :typing :negative-preconditions)
  (:types block location lamp - object)
  (:constants ceiling-lamp - lamp)
  (:predicates
    (on ?x - block ?y - block)             ; ?x stands on ?y
    (ontable ?x - block ?l - location)     ; ?x stands at location ?l of a surface
    (clear ?x - object)                    ; nothing stands on the block, or at the location
    (handempty)
    (holding ?x - block)
    (dirty ?x - block)                     ; stored in the scene, like the next
    (lit ?x - lamp))

  (:action switch-on
    :parameters (?x - lamp)
    :precondition (not (lit ?x))
    :effect (lit ?x))

  (:action wash
    :parameters (?x - block)
    :precondition (and (holding ?x) (dirty ?x) (lit ceiling-lamp))
    :effect (not (dirty ?x)))

  (:action pick-up
    :parameters (?x - block ?l - location)
    :precondition (and (clear ?x) (ontable ?x ?l) (handempty))
    :effect (and (not (ontable ?x ?l)) (not (clear ?x)) (not (handempty)) (holding ?x) (clear ?l)))

  (:action put-down
    :parameters (?x - block ?l - location)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (not (holding ?x)) (not (clear ?l)) (clear ?x) (handempty) (ontable ?x ?l)))

  (:action stack
    :parameters (?x - block ?y - block)
    :precondition (and (holding ?x) (clear ?y) (not (dirty ?x)))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y)))

  (:action unstack
    :parameters (?x - block ?y - block)
    :precondition (and (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y)))))
