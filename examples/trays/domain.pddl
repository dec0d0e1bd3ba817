; Items in trays: an arm takes one and puts it into another. A tray has room for several.
(define (domain trays)
  (:requirements :typing)
  (:types item tray - object)

  ; The facts; semantics.py derives from a scene which of them hold.
  (:predicates
    (in ?i - item ?t - tray)
    (holding ?i - item)
    (handempty))

  ; Each action is carried out by one of the candidates that semantics.py yields for it.
  (:action take
    :parameters (?i - item ?t - tray)
    :precondition (and (in ?i ?t) (handempty))
    :effect (and (holding ?i) (not (in ?i ?t)) (not (handempty))))

  (:action put
    :parameters (?i - item ?t - tray)
    :precondition (holding ?i)
    :effect (and (in ?i ?t) (handempty) (not (holding ?i)))))
