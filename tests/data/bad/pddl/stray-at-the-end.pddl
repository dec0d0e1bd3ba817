(define (problem two)
  (:domain parcels)
  (:objects a b - parcel t - truck home - place)
  (:init (at a depot) (at b home) (parked t depot))
  (:goal (and (loaded a) (at b home)))) ; that is all
that is all
