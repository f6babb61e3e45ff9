// Messages in the chosen language, from the catalogue of the server, and numbers as its locale writes them.
const COOKIE = "tdce-language"; // holds a language and nothing else
const COOKIE_SECONDS = 31_536_000; // a year

let words = { language: "en", locale: "en", languages: {}, messages: {} };
let plural = new Intl.PluralRules("en");

export function setWords(loaded) {
  words = loaded;
  plural = new Intl.PluralRules(loaded.locale);
  document.documentElement.lang = loaded.language;
}

export const has = (key) => key in words.messages;
export const language = () => words.language;
export const languages = () => Object.entries(words.languages);

// Kept for the next visit. The address has no language, so that whoever gets a link reads it in their own.
export function rememberLanguage(name) {
  document.cookie = `${COOKIE}=${name}; path=/; max-age=${COOKIE_SECONDS}; samesite=strict`;
  const here = new URL(location.href);
  if (!here.searchParams.has("lang")) return;
  here.searchParams.delete("lang");
  history.replaceState(history.state, "", here);
}

// A message with values in its placeholders, in the plural form for `count`.
export function t(key, values = {}) {
  return rich(key, values).join("");
}

// The same as a list of parts, for values that are elements.
export function rich(key, values = {}) {
  const entry = words.messages[key] ?? key;
  const message = typeof entry === "string" ? entry : entry[plural.select(values.count)] ?? entry.other;
  return message.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? (typeof values[part] === "number" ? number(values[part]) : values[part]) : part));
}

export const quoted = (text) => t("quoted", { text: String(text) });
export const number = (value, options = { maximumFractionDigits: 10 }) => new Intl.NumberFormat(words.locale, options).format(value);
export const decimals = (value, digits = 2) => number(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const whole = (value) => number(value, { maximumFractionDigits: 0 });
export const locale = () => words.locale;
