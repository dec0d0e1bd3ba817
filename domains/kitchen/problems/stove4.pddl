; Four blocks go from the floor to the stove, and the arm goes home. For scenes/iiwa_kitchen.robray and kitchen_blocks4.
(define (problem stove4)
  (:domain kitchen)
  (:objects b0 b1 b2 b3 - item floor stove sink - region)
  (:init (on b0 floor) (on b1 floor) (on b2 floor) (on b3 floor)
         (handempty) (athome) (heats stove) (washes sink))
  (:goal (and (on b0 stove) (on b1 stove) (on b2 stove) (on b3 stove) (athome))))
