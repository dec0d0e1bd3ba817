"""Reader of SDF, the models and worlds of Gazebo and Drake."""
