; Vessels stand on surfaces; the hand carries them, and pours what is in one into another.
(define (domain pour)
  (:requirements :typing)
  (:types vessel surface)
  (:predicates
    (on ?v - vessel ?s - surface)
    (filled ?v - vessel)
    (empty ?v - vessel)
    (handempty)
    (holding ?v - vessel))

  (:action take
    :parameters (?v - vessel ?s - surface)
    :precondition (and (on ?v ?s) (handempty))
    :effect (and (holding ?v) (not (on ?v ?s)) (not (handempty))))

  (:action put
    :parameters (?v - vessel ?s - surface)
    :precondition (holding ?v)
    :effect (and (on ?v ?s) (handempty) (not (holding ?v))))

  (:action pour
    :parameters (?v - vessel ?into - vessel)
    :precondition (and (holding ?v) (filled ?v) (empty ?into))
    :effect (and (filled ?into) (empty ?v) (not (filled ?v)) (not (empty ?into)))))
