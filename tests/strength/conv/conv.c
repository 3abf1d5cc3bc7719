/* conv VALUE FROM TO: converts lengths, weights and temperatures; reads lines of the same from standard input without arguments */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit { const char *name; char kind; double factor; double offset; };

static const struct unit units[] = {
    {"m", 'l', 1, 0}, {"km", 'l', 1000, 0}, {"cm", 'l', 0.01, 0}, {"mi", 'l', 1609.344, 0},
    {"kg", 'w', 1, 0}, {"g", 'w', 0.001, 0}, {"lb", 'w', 0.45359237, 0},
    {"C", 't', 1, 0}, {"K", 't', 1, -273.15}, {"F", 't', 0.5555555555555556, -17.77777777777778},
};

static const struct unit *find(const char *name) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0) return &units[i];
    return NULL;
}

static int convert(const char *value, const char *from, const char *to) {
    char *end;
    double number = strtod(value, &end);
    const struct unit *a = find(from), *b = find(to);
    if (*end != '\0') {
        fprintf(stderr, "conv: not a number: %s\n", value);
        return 2;
    }
    if (!a || !b) {
        fprintf(stderr, "conv: unknown unit: %s\n", a ? to : from);
        return 2;
    }
    if (a->kind != b->kind) {
        fprintf(stderr, "conv: cannot convert %s to %s\n", from, to);
        return 3;
    }
    double base = number * a->factor + a->offset;
    printf("%s %s = %.2f %s\n", value, from, (base - b->offset) / b->factor, to);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "units") == 0) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) printf("%s\n", units[i].name);
        return 0;
    }
    if (argc == 4) return convert(argv[1], argv[2], argv[3]);
    if (argc != 1) {
        fprintf(stderr, "usage: conv VALUE FROM TO\n");
        return 64;
    }
    char value[64], from[16], to[16];
    int worst = 0;
    while (scanf("%63s %15s %15s", value, from, to) == 3) {
        int code = convert(value, from, to);
        if (code > worst) worst = code;
    }
    return worst;
}
