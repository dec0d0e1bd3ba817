; The block on the right tray goes to the left one; load the scene baxter_trays, and take the arms baxter and baxter_left.
(define (problem across)
  (:domain handover)
  (:objects baxter baxter_left - arm a - item right_tray left_tray - place)
  (:init (at a right_tray) (empty baxter) (empty baxter_left))
  (:goal (at a left_tray)))
