; The block on the table goes into the drawer, the one in the drawer comes out. For scenes/panda_drawer.robray.
(define (problem swap)
  (:domain drawer)
  (:objects a b - item table - place drawer - drawer)
  (:init (in a drawer) (in b table) (accessible table) (closed drawer) (handempty))
  (:goal (and (in a table) (in b drawer) (closed drawer))))
