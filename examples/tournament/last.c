/* Plays the last of its legal actions. Compile: cc -O2 -o last last.c */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

int main(void) {
    char *line = NULL, *space;
    size_t size = 0;
    if (getline(&line, &size, stdin) < 0 || getline(&line, &size, stdin) < 0) return 1; /* the game, the seat */
    while (getline(&line, &size, stdin) > 0 && strncmp(line, "end of game", 11) != 0)
        if ((space = strrchr(line, ' ')) != NULL) { /* actions follow the observation */
            fputs(space + 1, stdout);               /* with its newline */
            fflush(stdout);
        }
    return 0;
}
