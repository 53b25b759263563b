Cursor<STAGES> fill, ring;  // fill runs ahead of ring by the k tiles in flight
