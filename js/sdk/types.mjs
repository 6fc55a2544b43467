// Prints src/openapi.ts, made of a server's specification: node js/sdk/types.mjs URL. It has the schemas
// that src/wire.ts names and those that these stand on; dialects of others have many more.

import { readFileSync } from "node:fs";
import openapiTS, {
    astToString,
} from "../../build/npm/node_modules/openapi-typescript/dist/index.mjs";

const wire = readFileSync(new URL("src/wire.ts", import.meta.url), "utf8");
const { openapi, info, components } = await (await fetch(`${process.argv[2]}/openapi.json`)).json();
const schemas = {};

function keep(name) {
    if (schemas[name]) return;
    schemas[name] = components.schemas[name];
    if (!schemas[name]) throw new Error(`the specification has no schema ${name}`);
    const references = JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g);
    for (const [, reference] of references) keep(reference);
}

for (const [, name] of wire.matchAll(/Schemas\["(\w+)"\]/g)) keep(name);
const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
const spec = { openapi, info, paths: {}, components: { schemas: sorted } };
const made = await openapiTS(spec, { defaultNonNullable: false, silent: true });
console.log(`/* Made by js/sdk/types.mjs of the server's specification: do not change it by hand. */

${astToString(made)}`);
