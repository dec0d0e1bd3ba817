(define (problem two)
  (:domain parcels)
  (:objects a b - parcel t - truck home - place)
  (:init (at a depot) (at b home) (parked t depot)))
