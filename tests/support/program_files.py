"""Tables as other programs write them: their columns, their quotes and their ways to write an ISBN and a year."""

from collections.abc import Sequence
from io import BytesIO

from openpyxl import Workbook

GOODREADS = """\
Book Id,Title,Author,Author l-f,Additional Authors,ISBN,ISBN13,My Rating,Average Rating,Publisher,Binding,\
Number of Pages,Year Published,Original Publication Year,Date Read,Date Added,Bookshelves,\
Bookshelves with positions,Exclusive Shelf,My Review,Spoiler,Private Notes,Read Count,Owned Copies
4671,The Great Gatsby,F. Scott Fitzgerald,"Fitzgerald, F. Scott",,="0743273567",="9780743273565",5,3.93,Scribner,\
Paperback,200,2004,1925,2019/07/04,2019/06/01,"to-read, classics","to-read (#12), classics (#3)",to-read,,,,1,0
6149,Beloved,Toni Morrison,"Morrison, Toni",,="",="9781400033416",4,3.96,Vintage,Paperback,324,,1987,,2019/06/02,\
fiction,fiction (#1),read,,,,1,0
"""
ZOTERO = """\
"Key","Item Type","Publication Year","Author","Title","Publication Title","ISBN","ISSN","DOI","Url","Date",\
"Pages","Publisher","Editor","Manual Tags","Automatic Tags"
"ABCD2345","book","1969","Le Guin, Ursula K.","The left hand of darkness","",\
"978-0-441-47812-5 0-441-47812-3","","","","1969-03","286","Ace","","Science fiction; Gethen","Androgyny"
"EFGH6789","book","","","Essays","","0-14-143951-3","","","","1 March 1969","","Penguin","Orwell, Sonia","","Essays"
"""
LIBRARYTHING = (
    "Book Id\tTitle\tSort Character\tPrimary Author\tPrimary Author Role\tSecondary Author\tPublication\tDate\tTags\t"
    "Collections\tISBN\tISBNs\tEntry Date\tWork id\n"
    "1\tThe Two Towers\t5\tTolkien, J. R. R.\tAuthor\t\tHarperCollins (1991), 352 pages\t1991\tfantasy, Middle-earth\t"
    "Your library\t[0261102362]\t[0261102362, 9780261102361]\t2020-01-02\t3203347\n"
    "2\tA map\t1\tAnonymous\tAuthor\t\t\tc1999\tmaps\tYour library\t[]\t[]\t2020-01-03\t1\n"
)
CALIBRE = """\
"author_sort","authors","comments","formats","id","identifiers","isbn","languages","pubdate","publisher","series",\
"size","tags","timestamp","title","title_sort","uuid"
"Le Guin, Ursula K.","Ursula K. Le Guin","","epub","17","goodreads:18423,isbn:9780441478125","","eng",\
"1969-03-01T00:00:00+00:00","Ace","","1","Science Fiction, Classics","2020-01-02T03:04:05+00:00",\
"The Left Hand of Darkness","Left Hand of Darkness, The","0e"
"Nobody","Nobody","","epub","18","","9780141439518","eng","0101-01-01T00:00:00+00:00","","","1","Unknown",\
"2020-01-02T03:04:05+00:00","No date","No date","0f"
"""
LIBIB = """\
item_type,title,creators,first_name,last_name,ean_isbn13,upc_isbn10,publisher,publish_date,group,tags
book,Emma,Jane Austen,Jane,Austen,9780141439587,0141439580,Penguin,2003-04-29,,"classics,romance"
"""
STORYGRAPH = """\
Title,Authors,Contributors,ISBN/UID,Format,Read Status,Date Added,Last Date Read,Tags,Owned?
Emma,Jane Austen,,9780141439587,paperback,read,2024/01/02,2024/02/03,"classics, romance",Yes
"""
KOHA = """\
biblionumber,title,author,copyrightdate,publicationyear,isbn,itemtype
17,Emma,"Austen, Jane",2003,,9780141439587,BK
18,Dune,"Herbert, Frank",,1965,9780441013593,BK
"""
KOHA_CART = "Title,Main author,Publication date,ISBN,Subjects\nEmma,Austen,[2003],9780141439587,Love; England\n"
ALMA = """\
MMS Id,Title,Author,Publication Date,ISBN,Subjects
9912,Emma,"Austen, Jane",[2016],9780141439587; 0141439580,Love stories.; England
"""
OPEN_LIBRARY = """\
Work ID,Title,Authors,First Publish Year,Edition ID,Subjects,Bookshelf
OL66531W,Mansfield Park,Jane Austen,1814,OL7353617M,"Courtship, England",Already Read
"""
FRENCH = "Titre;Auteur;Année;ISBN;Sujet\nEmma;Jane Austen;c2001;9780141439587;Roman\n"
SPANISH = "Título;Autor;Año;ISBN;Género\nEmma;Jane Austen;2001;9780141439587;Novela\n"
PANDAS_CSV = """\
,title,author,year,isbn,genre
0,Emma,Jane Austen,1815.0,9780141439587.0,Novel
1,Dune,Frank Herbert,1965.0,,Novel
"""
PANDAS_JSON = (
    '{"title":"Emma","author":"Jane Austen","year":1815,"isbn":9780141439587,"genre":"Novel"}\n'
    '{"title":1984,"author":"George Orwell","year":1949.0,"isbn":141036141,"genre":"Novel"}\n'
)
EXCEL = "sep=;\nTitel;Autor;Jahr;ISBN;Gattung;\nEmma;Jane Austen;01.12.1815;978-0-14-143958-7;Roman;\n;;;;;\n"


def write_workbook(*rows: Sequence[object], second: Sequence[Sequence[object]] = ()) -> bytes:
    """Returns a workbook with a sheet of these rows, and a second sheet if there are rows of one."""
    workbook, file = Workbook(), BytesIO()
    sheets = [(workbook["Sheet"], rows), *([(workbook.create_sheet(), second)] if second else [])]
    for sheet, sheet_rows in sheets:
        for row in sheet_rows:
            sheet.append([*row])
    workbook.save(file)
    return file.getvalue()
