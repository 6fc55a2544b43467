/* The build writes the project's version here. */
export const VERSION = "0.0.0";

/* Whether version `a` comes before `b`; what is no version is no older than anything. */
export function isOlder(a: string, b: string): boolean {
  const numbers = (text: string) => text.split(/[.+-]/, 3).map(Number);
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
