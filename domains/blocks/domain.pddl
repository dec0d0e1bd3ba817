; Blocks on surfaces: the four operators of the classical blocks world, with locations on surfaces.
(define (domain blocks)
  (:requirements :typing)
  (:types block location - object)
  (:predicates
    (on ?x - block ?y - block)             ; ?x stands on ?y
    (ontable ?x - block ?l - location)     ; ?x stands at location ?l of a surface
    (clear ?x - object)                    ; nothing stands on the block, or at the location
    (handempty)
    (holding ?x - block))

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
    :precondition (and (holding ?x) (clear ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y)))

  (:action unstack
    :parameters (?x - block ?y - block)
    :precondition (and (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y)))))
