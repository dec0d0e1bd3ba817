; Blocks that are not where they seem: those of the domain blocks, with looks. What is `located`, `surely-on` and
; `surely-at` is a matter of probability, and the scene decides; here stands what each action must bring about.
(define (domain blocks-uncertain)
  (:requirements :typing)
  (:types block location - object)
  (:predicates
    (on ?x - block ?y - block)               ; ?x stands on ?y, as far as is known
    (ontable ?x - block ?l - location)       ; ?x stands at location ?l of a surface, as far as is known
    (clear ?x - object)
    (handempty)
    (holding ?x - block)
    (located ?x - block)                     ; P(the hand finds ?x where it reaches for it) >= 0.95
    (surely-on ?x - block ?y - block)        ; P(the middle of ?x is above ?y) >= 0.95
    (surely-at ?x - block ?l - location))    ; P(the middle of ?x is in the cell of ?l) >= 0.95

  (:action look
    :parameters (?x - block)
    :precondition (and (clear ?x) (handempty))
    :effect (located ?x))

  (:action pick-up
    :parameters (?x - block ?l - location)
    :precondition (and (located ?x) (clear ?x) (ontable ?x ?l) (handempty))
    :effect (and (not (ontable ?x ?l)) (not (surely-at ?x ?l)) (not (clear ?x)) (not (handempty))
                 (holding ?x) (clear ?l)))

  (:action put-down
    :parameters (?x - block ?l - location)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (not (holding ?x)) (not (clear ?l)) (clear ?x) (handempty) (ontable ?x ?l) (surely-at ?x ?l)))

  (:action stack
    :parameters (?x - block ?y - block)
    :precondition (and (holding ?x) (clear ?y) (located ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y) (surely-on ?x ?y)))

  (:action unstack
    :parameters (?x - block ?y - block)
    :precondition (and (located ?x) (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y)) (not (surely-on ?x ?y)))))
