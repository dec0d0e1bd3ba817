; Blocks that are not where they seem: those of the domain blocks, with looks. The predicates below the line are a matter
; of probability, and the scene decides; here stands what each action must bring about, and what it may undo.
(define (domain blocks-uncertain)
  (:requirements :adl)
  (:types block location - object)
  (:predicates
    (on ?x - block ?y - block)               ; ?x stands on ?y, as far as is known
    (ontable ?x - block ?l - location)       ; ?x stands at location ?l of a surface, as far as is known
    (clear ?x - object)
    (handempty)
    (holding ?x - block)
    ; ---
    (sharp ?x - block)                       ; ?x is known at least as well as a look tells
    (located ?x - block)                     ; P(the hand finds ?x where it reaches for it) >= 0.95
    (matched ?x - block ?y - block)          ; P(the middle of ?x is above ?y, should it be put there) >= 0.95
    (surely-on ?x - block ?y - block)        ; P(the middle of ?x is above ?y, on which it stands) >= 0.95
    (surely-at ?x - block ?l - location))    ; P(the middle of ?x is in the cell of ?l) >= 0.95

  (:action look
    :parameters (?x - block)
    :precondition (and (clear ?x) (handempty))
    :effect (and (sharp ?x) (located ?x)))

  (:action judge                             ; no motion: looks at both must be enough to put one on the other
    :parameters (?x - block ?y - block)
    :precondition (and (sharp ?x) (sharp ?y))
    :effect (matched ?x ?y))

  (:action pick-up
    :parameters (?x - block ?l - location)
    :precondition (and (located ?x) (clear ?x) (ontable ?x ?l) (handempty))
    :effect (and (not (ontable ?x ?l)) (not (surely-at ?x ?l)) (not (clear ?x)) (not (handempty))
                 (holding ?x) (clear ?l) (not (located ?x)) (not (sharp ?x))))

  (:action put-down
    :parameters (?x - block ?l - location)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (not (holding ?x)) (not (clear ?l)) (clear ?x) (handempty) (ontable ?x ?l) (surely-at ?x ?l)
                 (forall (?z - block) (and (not (matched ?x ?z)) (not (matched ?z ?x))))))

  (:action stack
    :parameters (?x - block ?y - block)
    :precondition (and (holding ?x) (clear ?y) (matched ?x ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y) (surely-on ?x ?y)
                 (forall (?z - block) (and (not (matched ?x ?z)) (not (matched ?z ?x))))))

  (:action unstack
    :parameters (?x - block ?y - block)
    :precondition (and (located ?x) (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y)) (not (surely-on ?x ?y))
                 (not (located ?x)) (not (sharp ?x)))))
