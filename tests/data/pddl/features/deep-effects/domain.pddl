; Effects inside effects, deeper than the translator reads: universal effects with several parts inside conditions, the
; same variable at two levels, conditions in conditions, ands in ands.
(define (domain deep-effects)
  (:requirements :adl)
  (:types bird cage)
  (:predicates (in ?b - bird ?c - cage) (open ?c - cage) (free ?b - bird) (loud) (night) (tame ?b - bird) (counted))
  (:action knock
    :effect (and (and (loud) (and (counted)))
                 (and)
                 (when (night)
                   (forall (?b - bird ?c - cage)
                     (when (and (in ?b ?c) (open ?c))
                       (and (free ?b) (not (in ?b ?c))))))))
  (:action unlatch
    :parameters (?c - cage)
    :effect (forall (?b - bird)
              (when (in ?b ?c)
                (and (open ?c)
                     (when (not (tame ?b)) (and (free ?b) (and (not (in ?b ?c)) (loud))))))))
  (:action dusk
    :effect (forall (?c - cage)
              (forall (?b - bird)
                (and (night) (when (and (loud) (free ?b) (tame ?b)) (and (in ?b ?c) (not (free ?b))))))))
  (:action mend
    :parameters (?c - cage)
    :precondition (counted)
    :effect (when (open ?c)
              (and (forall (?c - cage) (when (open ?c) (and (not (open ?c)) (forall (?c - bird) (not (free ?c))))))
                   (night))))
  (:action rest
    :precondition (loud)
    :effect (when (loud) (when () (not (loud))))))
