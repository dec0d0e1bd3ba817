; A robot with grippers carries balls between rooms. Nothing is typed; names are in mixed case.
(define (domain GRIPPER)
  (:predicates (room ?r) (ball ?b) (gripper ?g) (robot-in ?r) (ball-in ?b ?r) (free ?g) (Carries ?g ?b))
  (:action MOVE
    :parameters (?from ?to)
    :precondition (and (room ?from) (room ?to) (robot-in ?from))
    :effect (and (robot-in ?to) (not (robot-in ?from))))
  (:action grab
    :parameters (?b ?r ?g)
    :precondition (and (ball ?b) (room ?r) (gripper ?g) (ball-in ?b ?r) (robot-in ?r) (free ?g))
    :effect (and (carries ?g ?b) (not (ball-in ?b ?r)) (not (free ?g))))
  (:action release
    :parameters (?b ?r ?g)
    :precondition (and (carries ?g ?b) (robot-in ?r))
    :effect (and (ball-in ?b ?r) (free ?g) (not (carries ?g ?b)))))
