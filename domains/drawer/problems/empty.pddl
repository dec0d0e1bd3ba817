; The block goes from the drawer to the table, and the drawer is closed again. For scenes/panda_drawer.robray.
(define (problem empty)
  (:domain drawer)
  (:objects a b - item table - place drawer - drawer)
  (:init (in a drawer) (in b table) (accessible table) (closed drawer) (handempty))
  (:goal (and (in a table) (closed drawer))))
