Cursor<STAGES> ring;
