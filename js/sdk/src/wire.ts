/*
 * What the HTTP API says, in its own names. openapi.ts is made of the server's specification, of the
 * schemas that are named here (js/sdk/types.mjs).
 */

import type { components } from "./openapi.js";

type Schemas = components["schemas"];

export type ErrorBody = Schemas["ErrorCause"];

/* Of a program, too: /v1/run speaks the words of cells. */
export type Result = Schemas["CellResult"];
/* The same without what the events before it have told. */
export type ResultEnd = Schemas["CellEnd"];
export type OutputData = Schemas["CellOutput"];
export type Shown = Schemas["Shown"];
export type Displayed = Schemas["Displayed"];
export type Text = Schemas["Text"];
export type Clear = Schemas["Clear"];
export type Question = Schemas["Input"];
export type Start = Schemas["CellStart"];
export type CodeError = Schemas["Exception"];
export type Denial = Schemas["Denial"];
export type MadeFile = Schemas["ResultFile"];
export type Usage = Schemas["Usage"];

export type Limits = Schemas["Limits"];
export type KernelLimits = Schemas["KernelLimits"];
export type Network = "none" | "open" | Schemas["NetworkPolicy"] | Schemas["NetworkRuleList"];
export type FigureFormat = NonNullable<Schemas["CellRequest"]["formats"]>[number];
export type OnDisconnect = NonNullable<Schemas["CellRequest"]["on_disconnect"]>;

export type Sandbox = Schemas["Sandbox"];
export type Kernel = Schemas["Kernel"];
export type Variable = Schemas["Variable"];
export type Variables = Schemas["Variables"];
export type Completion = Schemas["Completion"];
export type Inspection = Schemas["Inspection"];
export type Command = Schemas["Command"];
export type CommandResult = Schemas["CommandResult"];
export type Entry = Schemas["FileEntry"];
export type FileMade = Schemas["FileMade"];
export type Unpacked = Schemas["Unpacked"];
export type Port = Schemas["Port"];
export type PortList = Schemas["PortList"];
export type Link = Schemas["Link"];
export type StoredFile = Schemas["ListedFile"];
export type UploadedFile = Schemas["StoredFile"];
export type Info = Schemas["Info"];
export type Profile = Schemas["Profile"];

/* A line of a stream, of whatever runs. */
export interface Event {
  seq: number;
  event: string;
  data: unknown;
}

export interface Execution {
  id: string;
  state: "running" | "done";
  created: number;
  result: Result | null;
}

export interface InputFile {
  path: string;
  content?: string;
  encoding?: "utf-8" | "base64";
  file_id?: string;
}
