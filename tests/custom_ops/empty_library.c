/* Registers nothing. */
int answer(void) { return 42; }
