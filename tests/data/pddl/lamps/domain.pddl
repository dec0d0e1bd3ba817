; Lamps and switches: conditional and universal effects, quantified and disjunctive conditions.
(define (domain lamps)
  (:requirements :adl)
  (:types lamp switch)
  (:predicates (lit ?l - lamp) (wired ?s - switch ?l - lamp) (broken ?l - lamp) (pressed ?s - switch) (power)
               (alarm))
  (:action press
    :parameters (?s - switch)
    :precondition (and (power) (or (not (pressed ?s)) (exists (?l - lamp) (and (wired ?s ?l) (lit ?l)))))
    :effect (and (pressed ?s)
                 (forall (?l - lamp)
                   (and (when (and (wired ?s ?l) (not (lit ?l)) (not (broken ?l))) (lit ?l))
                        (when (and (wired ?s ?l) (lit ?l)) (not (lit ?l)))))
                 (when (forall (?l - lamp) (imply (wired ?s ?l) (broken ?l))) (and (alarm) (not (power))))))
  (:action replace
    :parameters (?l - lamp)
    :precondition (and (broken ?l) (not (power)))
    :effect (not (broken ?l)))
  (:action turn-on
    :parameters ()
    :precondition (and)
    :effect (and (power) (not (alarm))))
  (:action turn-off
    :precondition (power)
    :effect (and (not (power)) (forall (?l - lamp) (not (lit ?l))) (forall (?s - switch) (not (pressed ?s))))))
