; The box goes to its goal, and the plate from the table to the rack. For scenes/panda_push.robray.
(define (problem rack)
  (:domain push)
  (:objects box plate - item table goal edge rack - region)
  (:init (on box table) (on plate table) (handempty)
         (connected table goal) (connected goal table) (connected table edge) (connected edge table)
         (connected goal edge) (connected edge goal))
  (:goal (and (on box goal) (on plate rack))))
