; The tea of the cup is poured into the bowl, and the cup put back; the scene is tea.
(define (problem tea)
  (:domain pour)
  (:objects cup bowl - vessel table - surface)
  (:init)
  (:goal (and (filled bowl) (on cup table))))
