/*
 * snake_case of the API to camelCase and back, for types and for values. What stands below one of
 * the OPAQUE names belongs to the user (variables, metadata, MIME types) and stays as it is.
 */

const OPAQUE = ["env", "metadata", "data", "detail"] as const;
type Opaque = (typeof OPAQUE)[number];

type CamelKey<K extends string> = K extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelKey<Tail>>}`
  : K;

export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? {
        [K in keyof T as K extends string ? CamelKey<K> : K]: K extends Opaque ? T[K] : Camel<T[K]>;
      }
    : T;

/* The same for what users give: undefined is as good as a field that is left out. */
export type Given<T> = T extends readonly (infer Item)[]
  ? readonly Given<Item>[]
  : T extends object
    ? {
        [K in keyof T as K extends string ? CamelKey<K> : K]: K extends Opaque
          ? T[K]
          : Given<T[K]> | undefined;
      }
    : T;

const isOpaque = (name: string) => (OPAQUE as readonly string[]).includes(name);
const camelKey = (name: string) => name.replace(/_(.)/g, (_, next: string) => next.toUpperCase());
const snakeKey = (name: string) => name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);

function renamed(value: unknown, key: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, key));
  if (typeof value !== "object" || value === null) return value;
  const made: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) made[key(name)] = isOpaque(name) ? member : renamed(member, key);
  }
  return made;
}

export function toCamel<T>(value: T): Camel<T> {
  return renamed(value, camelKey) as Camel<T>;
}

export function toSnake(value: object): Record<string, unknown> {
  return renamed(value, snakeKey) as Record<string, unknown>;
}
