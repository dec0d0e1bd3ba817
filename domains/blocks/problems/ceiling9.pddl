; A tower of 9 blocks, wherever there is room for it; the scene is ceiling9.
(define (problem ceiling9)
  (:domain blocks)
  (:objects b0 b1 b2 b3 b4 b5 b6 b7 b8 - block)
  (:init)
  (:goal (and (on b0 b1) (on b1 b2) (on b2 b3) (on b3 b4) (on b4 b5) (on b5 b6) (on b6 b7) (on b7 b8))))
