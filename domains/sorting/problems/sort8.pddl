; All 8 bricks go where they belong; the scene is sort8.
(define (problem sort8)
  (:domain sorting)
  (:objects b1 b2 b3 b4 b5 b6 b7 b8 - item mixed red_area blue_area green_area - area)
  (:init)
  (:goal (forall (?x - item) (sorted ?x))))
