; Two red items go aside, and what was in their way is where it was; the scene is rearrange_row.
(define (problem row)
  (:domain rearrangement)
  (:objects red_left red_middle red_right blue_left blue_middle blue_right - item aside_left aside_right front_left front_middle front_right - place)
  (:init)
  (:goal (and (at red_left aside_left) (at red_right aside_right) (at blue_left front_left) (at blue_middle front_middle) (at blue_right front_right))))
