; A tower of 6 blocks, wherever there is room for it; the scene is ceiling6.
(define (problem ceiling6)
  (:domain blocks)
  (:objects b0 b1 b2 b3 b4 b5 - block)
  (:init)
  (:goal (and (on b0 b1) (on b1 b2) (on b2 b3) (on b3 b4) (on b4 b5))))
