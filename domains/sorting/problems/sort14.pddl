; All 14 bricks go where they belong; the scene is sort14.
(define (problem sort14)
  (:domain sorting)
  (:objects b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 - item mixed red_area blue_area green_area - area)
  (:init)
  (:goal (forall (?x - item) (sorted ?x))))
