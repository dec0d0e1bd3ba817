; Three blocks from three tables are brought to a fourth. For scenes/mobile_panda.json and scenes/three_tables.robray.
(define (problem fetch3)
  (:domain mobile_manipulation)
  (:objects a b c - item north east west south - surface dock - location)
  (:init (at dock) (on a north) (on b east) (on c west) (handempty) (= (total-cost) 0))
  (:goal (and (on a south) (on b south) (on c south)))
  (:metric minimize (total-cost)))
