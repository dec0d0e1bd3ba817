; All 28 bricks go where they belong; the scene is sort28.
(define (problem sort28)
  (:domain sorting)
  (:objects b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19 b20 b21 b22 b23 b24 b25 b26 b27 b28 - item mixed red_area blue_area green_area - area)
  (:init)
  (:goal (forall (?x - item) (sorted ?x))))
