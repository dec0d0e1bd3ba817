; Items on tables and in drawers, which have to be open for the hand to reach in.
(define (domain drawer)
  (:requirements :typing)
  (:types item place - object drawer - place)
  (:predicates
    (in ?i - item ?p - place)              ; ?i stands on the table, or lies in the drawer, ?p
    (accessible ?p - place)                ; a table always is, a drawer when it is open
    (closed ?d - drawer)
    (holding ?i - item)
    (handempty))

  (:action open-drawer
    :parameters (?d - drawer)
    :precondition (and (closed ?d) (handempty))
    :effect (and (accessible ?d) (not (closed ?d))))

  (:action close-drawer
    :parameters (?d - drawer)
    :precondition (and (accessible ?d) (handempty))
    :effect (and (closed ?d) (not (accessible ?d))))

  (:action take
    :parameters (?i - item ?p - place)
    :precondition (and (in ?i ?p) (accessible ?p) (handempty))
    :effect (and (holding ?i) (not (in ?i ?p)) (not (handempty))))

  (:action put
    :parameters (?i - item ?p - place)
    :precondition (and (holding ?i) (accessible ?p))
    :effect (and (in ?i ?p) (handempty) (not (holding ?i)))))
